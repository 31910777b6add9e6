"""What pictures decide about a model, in every task that learns from them."""

# See `Recipe.not_settings`.
SHAPE_DECIDED = dict.fromkeys(
    ("height", "width", "channels"), "the pictures decide it. Leave it out, or give `picture_size=`."
)
